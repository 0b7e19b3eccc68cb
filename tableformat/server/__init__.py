"""`tableformat serve`: an Iceberg REST catalog over any catalog that this library opens (specs/serve.md).

    request      application.py    paths, access, limits, errors as the specification has them
    route        routes/           one module for each kind of thing: namespaces, tables, views, transactions, plans
    read         served_tables.py  the head of the table; while deletes are pending, its staged conversion
    write        client_commits.py a client's commit on served metadata becomes a commit of the catalog

Other engines read every table as it is, because they never see an equality or range delete. Needs the extra
`tableformat[serve]`.
"""
