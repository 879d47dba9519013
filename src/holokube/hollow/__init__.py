"""HoloKubelet: the kubelets of thousands of nodes in one process, without anything behind them."""
