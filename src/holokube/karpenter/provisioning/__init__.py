"""From pending pods to NodeClaims: triggers, batches, the provisioner."""
