# One key for the bucket and the disks of nodes: who may not use it reads neither.
resource "aws_kms_key" "data" {
  description             = "${var.name}: datasets and disks"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = data.aws_iam_policy_document.key.json
  tags                    = local.tags
}

resource "aws_kms_alias" "data" {
  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.data.key_id
}

data "aws_iam_policy_document" "key" {
  # Without it nobody could ever change the key again; the account's own policies decide who may do what.
  # checkov:skip=CKV_AWS_109: a key's policy is about that key only, whatever the resource says
  # checkov:skip=CKV_AWS_111: likewise
  # checkov:skip=CKV_AWS_356: likewise
  statement {
    sid       = "Account"
    actions   = ["kms:*"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = ["arn:${data.aws_partition.here.partition}:iam::${local.account}:root"]
    }
  }

  # Auto scaling starts nodes, whose disks are encrypted.
  statement {
    sid       = "Disks"
    actions   = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = [local.autoscaling]
    }
  }

  statement {
    sid       = "DisksGrant"
    actions   = ["kms:CreateGrant"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = [local.autoscaling]
    }

    condition {
      test     = "Bool"
      variable = "kms:GrantIsForAWSResource"
      values   = ["true"]
    }
  }
}

locals {
  autoscaling = "arn:${data.aws_partition.here.partition}:iam::${local.account}:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
}
