"""The conformance cases of the Gateway API, said in documents of ours and asked of a real HAProxy.

`*.yaml` say, for each case of the project's conformance suite, what our documents would be (by their shapes), which
requests are sent and what must come back: cases.py reads them, documents.py compiles all of them into one bundle,
backends.py has the servers behind it, asking.py sends and compares, results.py writes docs/reference/gateway-api.md.
The project's own files are never copied here: suite.py looks the names of its cases up in the Go module.
"""
