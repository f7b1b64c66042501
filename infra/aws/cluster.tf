data "aws_caller_identity" "here" {}

data "aws_partition" "here" {}

data "aws_eks_cluster" "cluster" {
  name = var.cluster
}

data "aws_iam_openid_connect_provider" "cluster" {
  url = data.aws_eks_cluster.cluster.identity[0].oidc[0].issuer
}

locals {
  account = data.aws_caller_identity.here.account_id
  issuer  = trimprefix(data.aws_iam_openid_connect_provider.cluster.url, "https://")
  tags    = { "app.kubernetes.io/part-of" = "compoworld" }
}
