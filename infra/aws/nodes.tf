# Nodes for shards, which may be taken away at any time, and nodes that train, close together on a fast network.
#
# Both pools begin with no node, and the cluster's autoscaler learns from tags what a node of theirs would have beside
# CPUs, memory and GPUs: it starts none for pods that ask for something that it does not know of.

locals {
  template        = "k8s.io/cluster-autoscaler/node-template/resources"
  gpu_disk_gib    = 1500 # a pod that trains asks for 1 TiB, and a node keeps a tenth and its images to itself
  gpu_scratch_gib = 1300
}

resource "aws_iam_role" "node" {
  name               = "${var.name}-node"
  description        = "CompoWorld's nodes"
  assume_role_policy = data.aws_iam_policy_document.node.json
  tags               = local.tags
}

data "aws_iam_policy_document" "node" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = toset(["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"])

  role       = aws_iam_role.node.name
  policy_arn = "arn:${data.aws_partition.here.partition}:iam::aws:policy/${each.value}"
}

resource "aws_launch_template" "spot" {
  name_prefix = "${var.name}-spot-"
  tags        = local.tags

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1 # out of the reach of pods
  }

  block_device_mappings {
    device_name = "/dev/xvda"

    ebs {
      volume_size = 100
      volume_type = "gp3"
      encrypted   = true
      kms_key_id  = aws_kms_key.data.arn
    }
  }
}

resource "aws_eks_node_group" "spot" {
  cluster_name    = var.cluster
  node_group_name = "${var.name}-spot"
  node_role_arn   = aws_iam_role.node.arn
  subnet_ids      = var.subnets
  capacity_type   = "SPOT"
  ami_type        = "AL2023_x86_64_STANDARD"
  instance_types  = var.spot.instance_types
  labels          = { "compoworld.dev/spot" = "true" }
  tags            = merge(local.tags, { "${local.template}/ephemeral-storage" = "80Gi" })

  launch_template {
    id      = aws_launch_template.spot.id
    version = aws_launch_template.spot.latest_version
  }

  scaling_config {
    min_size     = 0
    desired_size = 0
    max_size     = var.spot.max_nodes
  }

  taint {
    key    = "compoworld.dev/spot"
    value  = "true"
    effect = "NO_SCHEDULE"
  }

  lifecycle {
    ignore_changes = [scaling_config[0].desired_size] # the autoscaler's
  }

  depends_on = [aws_iam_role_policy_attachment.node]
}

resource "aws_placement_group" "gpu" {
  count = var.gpu == null ? 0 : 1

  name     = "${var.name}-gpu"
  strategy = "cluster"
  tags     = local.tags
}

# EFA's traffic has no addresses: both rules have to name the group itself.
resource "aws_security_group" "efa" {
  count = var.gpu == null ? 0 : 1

  name        = "${var.name}-efa"
  description = "CompoWorld: traffic among nodes that train"
  vpc_id      = data.aws_eks_cluster.cluster.vpc_config[0].vpc_id
  tags        = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "efa" {
  count = var.gpu == null ? 0 : 1

  description                  = "From each other"
  security_group_id            = aws_security_group.efa[0].id
  referenced_security_group_id = aws_security_group.efa[0].id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "efa" {
  count = var.gpu == null ? 0 : 1

  description                  = "To each other"
  security_group_id            = aws_security_group.efa[0].id
  referenced_security_group_id = aws_security_group.efa[0].id
  ip_protocol                  = "-1"
}

resource "aws_launch_template" "gpu" {
  count = var.gpu == null ? 0 : 1

  name_prefix   = "${var.name}-gpu-"
  instance_type = var.gpu.instance_type
  tags          = local.tags

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    device_name = "/dev/xvda"

    ebs {
      volume_size = local.gpu_disk_gib
      volume_type = "gp3"
      throughput  = 1000
      iops        = 16000
      encrypted   = true
      kms_key_id  = aws_kms_key.data.arn
    }
  }

  placement {
    group_name = aws_placement_group.gpu[0].name
  }

  # The first one carries IP as well; the others are for EFA alone and take no addresses from the subnet.
  dynamic "network_interfaces" {
    for_each = range(max(1, var.gpu.efa))

    content {
      network_card_index    = network_interfaces.value
      device_index          = network_interfaces.value == 0 ? 0 : 1
      interface_type        = var.gpu.efa == 0 ? null : network_interfaces.value == 0 ? "efa" : "efa-only"
      delete_on_termination = true
      security_groups = [
        aws_security_group.efa[0].id,
        data.aws_eks_cluster.cluster.vpc_config[0].cluster_security_group_id,
      ]
    }
  }

  dynamic "capacity_reservation_specification" {
    for_each = var.gpu.reservation == null ? [] : [var.gpu.reservation]

    content {
      capacity_reservation_target {
        capacity_reservation_id = capacity_reservation_specification.value
      }
    }
  }
}

resource "aws_eks_node_group" "gpu" {
  count = var.gpu == null ? 0 : 1

  cluster_name    = var.cluster
  node_group_name = "${var.name}-gpu"
  node_role_arn   = aws_iam_role.node.arn
  subnet_ids      = [var.gpu.subnet]
  ami_type        = "AL2023_x86_64_NVIDIA"
  labels          = { "compoworld.dev/pool" = "gpu" }
  tags = merge(
    local.tags,
    { "${local.template}/ephemeral-storage" = "${local.gpu_scratch_gib}Gi" },
    var.gpu.efa == 0 ? {} : { "${local.template}/vpc.amazonaws.com/efa" = tostring(var.gpu.efa) },
  )

  launch_template {
    id      = aws_launch_template.gpu[0].id
    version = aws_launch_template.gpu[0].latest_version
  }

  scaling_config {
    min_size     = 0
    desired_size = 0
    max_size     = var.gpu.nodes
  }

  taint {
    key    = "nvidia.com/gpu"
    value  = "true"
    effect = "NO_SCHEDULE"
  }

  lifecycle {
    ignore_changes = [scaling_config[0].desired_size]
  }

  depends_on = [aws_iam_role_policy_attachment.node]
}
