"""Tables of each project, in a process of its own: `process` talks to one, `answering` is what runs in it.

An adapter is a class with the verbs of `adapter.Adapter`; what its project cannot do it names in `lacks`, with the
reason.
"""
