"""What limits the speed on a CPU, and what might help: sentences for the reports."""

TILES = (
    "a tile reads a few cache lines from each of many source rows and writes a few to each of many target rows. "
    "Reading the next tile while one is written was tried; both became slower. Rows that lie a power of two bytes "
    "apart share sets of the caches. Transposing blocks of 32 bytes might help."
)
NARROW = (
    "each row is cut into 64 runs of 1 to 16 vectors, one per output. If an output does not begin at a cache line, "
    "each tile writes two lines of it only in part. Tiles that end at cache lines of the output might help."
)
OBJECTS = (
    "1,000 parts of 128 KiB. Python needs 4 to 6 microseconds per part for a view, its checks and its address. Copying "
    "the part takes 13. Computing the addresses without an object per part might help."
)
SEVENTH = (
    "only one item in seven of each cache line is used. 0.25 to 0.29 is the most that the bytes read allow, and NumPy "
    "reaches it too."
)
THREE = (
    "three outputs are written in turn, and each store reads its cache line first. Non-temporal stores were half as "
    "fast if the outputs' addresses agree in their low 12 bits. Writing one output after the other might help."
)
PAGES = (
    "new outputs are new pages, which the system clears first. That takes as long as copying. onnxruntime reuses "
    "memory that it has freed before. NumPy copies contiguous bytes by memcpy. Into new pages, memcpy is about a tenth "
    "faster than our non-temporal stores; into other pages it is a third slower. Keeping memory for the next outputs "
    "might help."
)
