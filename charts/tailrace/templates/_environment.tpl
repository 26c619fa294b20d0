{{/* What driver and executors find in their environment. */}}

{{- define "tailrace.env" -}}
{{- $values := .Values }}
{{- $kubernetes := eq $values.mode "kubernetes" }}
- name: TAILRACE_CHECKPOINT
  value: {{ $values.checkpoint.url | default "/var/lib/tailrace/checkpoint" | quote }}
- name: TAILRACE_HTTP__PORT
  value: {{ $values.service.targetPort | quote }}
- name: TAILRACE_RETRY__GRACE
  value: {{ printf "%ds" (sub (int $values.terminationGracePeriodSeconds) 20) }}
{{- if include "tailrace.secretFiles" . }}
- name: TAILRACE_SECRETS_DIR
  value: /etc/tailrace/secrets
{{- end }}
{{- with $values.kafka }}
{{- with .bootstrapServers }}
- name: TAILRACE_KAFKA__BOOTSTRAP_SERVERS
  value: {{ . | quote }}
{{- end }}
{{- with .sasl }}
{{- if .mechanism }}
- name: TAILRACE_KAFKA__SASL__MECHANISM
  value: {{ .mechanism }}
{{- end }}
{{- range $name, $value := dict "USERNAME" .username "TOKEN_URL" .tokenUrl "SCOPE" .scope }}
{{- with $value }}
- name: TAILRACE_KAFKA__SASL__{{ $name }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if .tls.enabled }}
- name: TAILRACE_KAFKA__TLS__ENABLED
  value: "true"
- name: TAILRACE_KAFKA__TLS__VERIFY_HOSTNAME
  value: {{ .tls.verifyHostname | quote }}
{{- if .tls.ca.existingSecret }}
- name: TAILRACE_KAFKA__TLS__CA_FILE
  value: /etc/tailrace/kafka/ca.crt
{{- end }}
{{- if .tls.client.existingSecret }}
- name: TAILRACE_KAFKA__TLS__CERTIFICATE_FILE
  value: /etc/tailrace/kafka/client.crt
- name: TAILRACE_KAFKA__TLS__KEY_FILE
  value: /etc/tailrace/kafka/client.key
{{- end }}
{{- end }}
{{- end }}
- name: TAILRACE_SPARK__MASTER
  value: {{ ternary (printf "k8s://%s" $values.spark.apiServer) (printf "local[%d,16]" (int $values.spark.driver.cores)) $kubernetes | quote }}
- name: TAILRACE_SPARK__DRIVER_MEMORY
  value: {{ $values.spark.driver.memory }}
- name: TAILRACE_SPARK__PARTITIONS
  value: {{ $values.spark.partitions | quote }}
- name: TAILRACE_SPARK__CONF
  value: {{ include "tailrace.sparkConf" . | quote }}
{{- if $kubernetes }}
- name: TAILRACE_SPARK__SECRET_FILE
  value: /etc/tailrace/spark/secret
{{- with $values.spark.executor }}
- name: TAILRACE_SPARK__EXECUTOR__INSTANCES
  value: {{ .instances | quote }}
- name: TAILRACE_SPARK__EXECUTOR__CORES
  value: {{ .cores | quote }}
- name: TAILRACE_SPARK__EXECUTOR__MEMORY
  value: {{ .memory }}
- name: TAILRACE_SPARK__EXECUTOR__MEMORY_OVERHEAD
  value: {{ .memoryOverhead }}
{{- end }}
- name: TAILRACE_SPARK__KUBERNETES__NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: TAILRACE_SPARK__KUBERNETES__DRIVER_POD
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: TAILRACE_SPARK__KUBERNETES__DRIVER_ADDRESS
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: TAILRACE_SPARK__KUBERNETES__IMAGE
  value: {{ include "tailrace.image" . | quote }}
- name: TAILRACE_SPARK__KUBERNETES__IMAGE_PULL_POLICY
  value: {{ $values.image.pullPolicy }}
- name: TAILRACE_SPARK__KUBERNETES__SERVICE_ACCOUNT
  value: {{ include "tailrace.serviceAccountName" . }}
- name: TAILRACE_SPARK__KUBERNETES__POD_TEMPLATE
  value: /etc/tailrace/executor/pod.yaml
{{- end }}
{{- range $name, $value := $values.config }}
- name: {{ $name }}
  value: {{ include "tailrace.text" $value | quote }}
{{- end }}
{{- range $name, $value := $values.pipeline.variables }}
- name: {{ $name }}
  value: {{ include "tailrace.text" $value | quote }}
{{- end }}
{{- end }}

{{- define "tailrace.envFrom" -}}
{{- with .Values.checkpoint.existingSecret }}
- secretRef:
    name: {{ . }}
{{- end }}
{{- with .Values.extraEnvFrom }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Spark's own settings as JSON; what values.spark.conf says goes last. */}}
{{- define "tailrace.sparkConf" -}}
{{- $conf := dict }}
{{- if eq .Values.mode "kubernetes" }}
{{- with .Values.spark.executor.cpuRequest }}
{{- $conf = set $conf "spark.kubernetes.executor.request.cores" . }}
{{- end }}
{{- with .Values.spark.executor.cpuLimit }}
{{- $conf = set $conf "spark.kubernetes.executor.limit.cores" . }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.spark.conf }}
{{- $conf = set $conf $name (include "tailrace.text" $value) }}
{{- end }}
{{- toJson $conf }}
{{- end }}
