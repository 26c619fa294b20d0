{{/* What the driver reads when it starts and Kubernetes would change under it: another content makes another pod. */}}
{{- define "tailrace.checksums" -}}
{{- $pipeline := .Values.pipeline.sql }}
{{- with .Values.pipeline.existingConfigMap }}
{{- $pipeline = toJson (lookup "v1" "ConfigMap" $.Release.Namespace .).data }}
{{- end -}}
checksum/pipeline: {{ sha256sum $pipeline }}
{{- if eq .Values.mode "kubernetes" }}
checksum/executor: {{ include "tailrace.executorPod" . | sha256sum }}
{{- if not .Values.spark.authentication.existingSecret }}
checksum/spark: {{ include "tailrace.sparkSecretValue" . | sha256sum }}
{{- end }}
{{- end }}
{{- end }}

{{/* The secret that the chart makes: the one that is there, else a new one, the same throughout a render. */}}
{{- define "tailrace.sparkSecretValue" -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "tailrace.sparkSecret" .) }}
{{- $kept := index ($there.data | default dict) .Values.spark.authentication.key }}
{{- if $kept }}
{{- b64dec $kept }}
{{- else }}
{{- if not (hasKey .Values.spark.authentication "made") }}
{{- $_ := set .Values.spark.authentication "made" (randAlphaNum 64) }}
{{- end }}
{{- .Values.spark.authentication.made }}
{{- end }}
{{- end }}
