"""The tables of each project, in its own process: `process` talks to one, `answering` runs in it.

An adapter is a class with the operations of `adapter.Adapter`. Operations that its project does not support are in
`lacks`, with the reason.
"""
