"""What each operator version does, before anything is copied: views in, views out.

One function per form of an operator; `gpuslice.versions` says which version has which. Inputs are positional,
attributes are keywords by their ONNX names. Tensors are arrays or views, and each function returns the list of the
node's outputs. The public functions copy the outputs at once; the graph runner goes on with them and copies at the end.
"""
