"""The folder of wheels that hold the models; without it these tests are not collected."""


def pytest_addoption(parser):
    parser.addoption("--models", help="folder with the wheels of silero-vad and rapidocr-onnxruntime")
