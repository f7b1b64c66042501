output "values" {
  description = "Values for the chart: `terraform output -raw values > aws.yaml`."
  value = yamlencode({
    store       = "s3://${aws_s3_bucket.data.id}/main"
    environment = { AWS_REGION = aws_s3_bucket.data.region }
    serviceAccounts = {
      job = { annotations = { "eks.amazonaws.com/role-arn" = aws_iam_role.job.arn } }
    }
    training = { enabled = var.gpu != null }
    kueue = merge(
      { enabled = var.gpu != null },
      var.gpu == null ? {} : { nodeLabels = { "compoworld.dev/pool" = "gpu" } },
      # Kueue admits nothing that asks for what its quota does not name.
      try(var.gpu.efa, 0) == 0 ? {} : { quota = { "vpc.amazonaws.com/efa" = tostring(var.gpu.nodes * var.gpu.efa) } },
    )
  })
}

output "readers" {
  description = "Role of each account that may read, for its annotation eks.amazonaws.com/role-arn."
  value       = { for account, role in aws_iam_role.reader : account => role.arn }
}
