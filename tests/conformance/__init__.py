"""One table of API behaviours, run unchanged against the embedded server and a real kube-apiserver."""
