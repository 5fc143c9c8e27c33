"""The option for the folder of wheels that hold the models."""


def pytest_addoption(parser):
    parser.addoption("--models", help="folder with the wheels of silero-vad and rapidocr-onnxruntime")
