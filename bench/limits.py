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
    "1,000 parts of 128 KiB. Besides the copy, Python makes a view of each part, checks it and takes its address. "
    "Computing the addresses without an object per part might help."
)
SEVENTH = (
    "memory is read in whole cache lines, and most bytes of a line are not copied. If another library is faster, the "
    "reason is not known yet."
)
THREE = (
    "the outputs are written in turns, a cache line of each at a time, past the caches. What else limits them is not "
    "known yet."
)
PAGES = (
    "new outputs are new pages, which the system clears first. onnxruntime reuses memory that it has freed before. "
    "Keeping memory for the next outputs might help."
)
