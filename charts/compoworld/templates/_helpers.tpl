{{/* Names are fixed: workflows refer to them, so there is one release in a namespace. */}}

{{- define "compoworld.labels" -}}
app.kubernetes.io/name: compoworld
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: compoworld
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "compoworld.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What the standard `restricted` wants of a pod. */}}
{{- define "compoworld.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* What it wants of a container, and a root that cannot be written. */}}
{{- define "compoworld.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* For the registries that images come from; of a pod, indented, or of an account. */}}
{{- define "compoworld.pullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Variables of the store, as jobs have them. */}}
{{- define "compoworld.storeEnvironment" -}}
- configMapRef:
    name: compoworld-environment
- secretRef:
    name: compoworld-store
    optional: true
{{- end }}

{{/* Pods of jobs and of this chart, but for an author's, which may reach fewer places. */}}
{{- define "compoworld.ownPods" -}}
matchLabels:
  app.kubernetes.io/part-of: compoworld
{{- include "compoworld.notAuthors" . }}
{{- end }}

{{- define "compoworld.notAuthors" }}
{{- if .Values.author.addresses }}
matchExpressions:
  - key: app.kubernetes.io/component
    operator: NotIn
    values: [synthesize-shard]
{{- end }}
{{- end }}

{{- define "compoworld.ports" -}}
{{- range . }}
- port: {{ . }}
  protocol: TCP
{{- end }}
{{- end }}

{{/* Port of a URL. */}}
{{- define "compoworld.port" -}}
{{- $url := urlParse . -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "80" "443" (eq $url.scheme "http")) -}}
{{- end }}

{{/* Refuses what a schema cannot express. */}}
{{- define "compoworld.check" -}}
{{- $policy := .Values.networkPolicy }}
{{- if $policy.enabled }}
{{- if not .Values.seaweedfs.enabled }}
{{- range $name := list "AWS_ENDPOINT_URL" "AWS_ENDPOINT_URL_S3" }}
{{- with get $.Values.environment $name }}
{{- if not (has (include "compoworld.port" .) (toStrings $policy.store.ports)) }}
{{- fail (printf "environment.%s: no pod could reach %s; add port %s to networkPolicy.store.ports" $name . (include "compoworld.port" .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $model := dig "llm" "models" dict .Values.config }}
{{- range $endpoint := get $model "endpoints" }}
{{- with get $endpoint "base_url" }}
{{- if not (has (include "compoworld.port" .) (toStrings $policy.endpoints.ports)) }}
{{- fail (printf "config.llm.models.%s: no pod could reach %s; add port %s to networkPolicy.endpoints.ports" $name . (include "compoworld.port" .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.seaweedfs.enabled (ne .Values.store (printf "s3://%s" .Values.seaweedfs.bucket)) (not (hasPrefix (printf "s3://%s/" .Values.seaweedfs.bucket) .Values.store)) }}
{{- fail (printf "seaweedfs.enabled: store is %s, which is not in SeaweedFS's bucket; set store to s3://%s/main" .Values.store .Values.seaweedfs.bucket) }}
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.pushgateway.enabled) (not .Values.seaweedfs.enabled) }}
{{- fail "metrics.serviceMonitor.enabled: there is nothing to ask; enable metrics.pushgateway" }}
{{- end }}
{{- if and .Values.author.addresses (not .Values.networkPolicy.enabled) }}
{{- fail "author.addresses: nothing cuts pi off without policies; enable networkPolicy" }}
{{- end }}
{{- if and .Values.evaluation.benchmarks (not .Values.training.enabled) }}
{{- fail "evaluation.benchmarks: run on trained models, and training is off; set training.enabled, or leave them out" }}
{{- end }}
{{- range $role, $model := dict "user" .Values.evaluation.user "judge" .Values.evaluation.judge }}
{{- if and $model (not (hasKey (dig "llm" "models" dict $.Values.config) $model)) }}
{{- fail (printf "evaluation.%s: config.llm.models has no %s" $role $model) }}
{{- end }}
{{- end }}
{{- range $name, $_ := .Values.environment }}
{{- if regexMatch "(?i)(secret|passw|token|credential|access_key|api_?key|_key$|^key$)" $name }}
{{- fail (printf "environment.%s: looks like a secret, and values are not kept secret; put it into the secret compoworld-store or compoworld-models" $name) }}
{{- end }}
{{- end }}
{{- range $name, $_ := .Values.config }}
{{- if has $name (list "store" "workers") }}
{{- fail (printf "config.%s: %s" $name (ternary "is set by the chart; remove it and set store" "is not read by jobs; remove it" (eq $name "store"))) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "compoworld.fromPrometheus" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.metrics.serviceMonitor.enabled -}}
- from:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: {{ $root.Values.metrics.serviceMonitor.namespace }}
  ports:
    - port: {{ index . 1 }}
      protocol: TCP
{{- end }}
{{- end }}
