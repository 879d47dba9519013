//go:build tools

// Package controlplane pins the upstream programs that the tests run against.
// It holds no code of its own: the blank imports keep `go mod tidy` from
// dropping the modules that `holokube.testing.controlplane` builds.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
