variable "name" {
  description = "Prefix of everything that is made."
  type        = string
  default     = "compoworld"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,30}[a-z0-9]$", var.name))
    error_message = "name: use 3 to 32 lowercase letters, digits and hyphens, beginning with a letter."
  }
}

variable "bucket" {
  description = "Name of the bucket for datasets; bucket names are unique in all of AWS."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "bucket: use 3 to 63 lowercase letters, digits and hyphens; dots break TLS."
  }
}

variable "cluster" {
  description = "Name of the EKS cluster, which exists already, with its OIDC provider registered in IAM."
  type        = string

  validation {
    condition     = length(var.cluster) > 0
    error_message = "cluster: name the EKS cluster; `aws eks list-clusters` lists them."
  }
}

variable "namespace" {
  description = "Namespace that the chart is installed in."
  type        = string
  default     = "compoworld"

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "namespace: is no name of a Kubernetes namespace."
  }
}

variable "readers" {
  description = "Service accounts that may read the bucket but not write it, as `namespace:name`; for notebooks and the like."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for account in var.readers : can(regex("^[a-z0-9-]+:[a-z0-9.-]+$", account))])
    error_message = "readers: write each as namespace:name, such as research:notebook; wildcards are not allowed."
  }
}

variable "noncurrent_days" {
  description = "Days for which a blob that was deleted or replaced can be brought back."
  type        = number
  default     = 14

  validation {
    condition     = var.noncurrent_days >= 1 && floor(var.noncurrent_days) == var.noncurrent_days
    error_message = "noncurrent_days: use a whole number of days, at least 1."
  }
}

variable "subnets" {
  description = "Private subnets for nodes without GPUs, in two zones at least."
  type        = list(string)

  validation {
    condition     = length(var.subnets) >= 2 && alltrue([for id in var.subnets : startswith(id, "subnet-")])
    error_message = "subnets: name at least two, such as subnet-0abc; spot capacity differs from zone to zone."
  }
}

variable "spot" {
  description = "The pool for shards, of capacity that may be taken away: its instance types, all with the same CPUs and memory, and most nodes."
  type = object({
    instance_types = list(string)
    max_nodes      = number
  })
  default = {
    instance_types = ["m7i.2xlarge", "m7a.2xlarge", "m6i.2xlarge", "m6a.2xlarge"]
    max_nodes      = 20
  }

  validation {
    condition     = length(var.spot.instance_types) >= 2 && var.spot.max_nodes >= 1
    error_message = "spot: name at least two instance types, so that one that is gone stops nothing, and at least one node."
  }
}

variable "gpu" {
  description = "The pool that trains; none if null. All its nodes lie in one subnet, close together. `efa` is how many EFA interfaces an instance has: 32 on p5.48xlarge, 16 on p5en.48xlarge, 4 on p4d.24xlarge, 0 where one node is enough; `gpus`, `cpus` and `memory_gib` are those of p5.48xlarge unless said otherwise. `reservation` is an on-demand capacity reservation, no Capacity Block."
  type = object({
    instance_type = string
    subnet        = string
    nodes         = number
    efa           = number
    gpus          = optional(number, 8)
    cpus          = optional(number, 192)
    memory_gib    = optional(number, 2048)
    reservation   = optional(string)
  })
  default = null

  validation {
    condition     = var.gpu == null ? true : startswith(var.gpu.subnet, "subnet-")
    error_message = "gpu.subnet: name one private subnet, in the zone that has the capacity."
  }

  validation {
    condition     = var.gpu == null ? true : var.gpu.nodes >= 1 && var.gpu.efa >= 0 && var.gpu.efa <= 32
    error_message = "gpu: use at least 1 node and 0 to 32 EFA interfaces."
  }

  validation {
    condition     = var.gpu == null ? true : var.gpu.nodes == 1 || var.gpu.efa >= 1
    error_message = "gpu.efa: several nodes without EFA train at a fraction of their speed; set how many interfaces the instance type has."
  }

  validation {
    condition     = var.gpu == null ? true : var.gpu.reservation == null ? true : startswith(var.gpu.reservation, "cr-")
    error_message = "gpu.reservation: name a capacity reservation, such as cr-0abc."
  }
}
