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
      # All that the pool may have. Kueue admits nothing that asks for more, or for what its quota does not name.
      var.gpu == null ? {} : {
        quota = merge(
          {
            "nvidia.com/gpu"    = tostring(var.gpu.nodes * var.gpu.gpus)
            "cpu"               = tostring(var.gpu.nodes * var.gpu.cpus)
            "memory"            = "${var.gpu.nodes * var.gpu.memory_gib}Gi"
            "ephemeral-storage" = "${var.gpu.nodes * local.gpu_scratch_gib}Gi"
          },
          var.gpu.efa == 0 ? {} : { "vpc.amazonaws.com/efa" = tostring(var.gpu.nodes * var.gpu.efa) },
        )
      },
    )
  })
}

output "readers" {
  description = "Role of each account that may read, for its annotation eks.amazonaws.com/role-arn."
  value       = { for account, role in aws_iam_role.reader : account => role.arn }
}
