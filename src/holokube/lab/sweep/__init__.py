"""Many runs of one scenario: a grid or a list of settings, over processes or a Dask cluster, resumable."""
