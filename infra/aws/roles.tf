# What service accounts may do. Each role can be taken on by one account of the cluster and by nobody else.

resource "aws_iam_role" "job" {
  name               = "${var.name}-job"
  description        = "CompoWorld's jobs: read and write datasets"
  assume_role_policy = data.aws_iam_policy_document.trust["${var.namespace}:compoworld-job"].json
  tags               = local.tags
}

resource "aws_iam_role_policy" "job" {
  name   = "datasets"
  role   = aws_iam_role.job.id
  policy = data.aws_iam_policy_document.write.json
}

resource "aws_iam_role" "reader" {
  for_each = var.readers

  name               = "${var.name}-reader-${substr(sha256(each.value), 0, 12)}" # names of roles end at 64 characters
  description        = "Reads CompoWorld's datasets, as ${each.value}"
  assume_role_policy = data.aws_iam_policy_document.trust[each.value].json
  tags               = local.tags
}

resource "aws_iam_role_policy" "reader" {
  for_each = var.readers

  name   = "datasets"
  role   = aws_iam_role.reader[each.value].id
  policy = data.aws_iam_policy_document.read.json
}

data "aws_iam_policy_document" "trust" {
  for_each = setunion(["${var.namespace}:compoworld-job"], var.readers)

  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]

    principals {
      type        = "Federated"
      identifiers = [data.aws_iam_openid_connect_provider.cluster.arn]
    }

    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:sub"
      values   = ["system:serviceaccount:${each.value}"]
    }

    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:aud"
      values   = ["sts.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "read" {
  statement {
    sid       = "Find"
    actions   = ["s3:ListBucket"]
    resources = [aws_s3_bucket.data.arn]
  }

  statement {
    sid       = "Read"
    actions   = ["s3:GetObject"]
    resources = ["${aws_s3_bucket.data.arn}/*"]
  }

  statement {
    sid       = "Decrypt"
    actions   = ["kms:Decrypt"]
    resources = [aws_kms_key.data.arn]
  }
}

data "aws_iam_policy_document" "write" {
  source_policy_documents = [data.aws_iam_policy_document.read.json]

  # Deleting is for attempts that lost a race and for probes; what is deleted can be brought back for a while.
  statement {
    sid       = "Write"
    actions   = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    resources = ["${aws_s3_bucket.data.arn}/*"]
  }

  statement {
    sid       = "Encrypt"
    actions   = ["kms:GenerateDataKey"]
    resources = [aws_kms_key.data.arn]
  }
}
