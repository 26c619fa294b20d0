{{/* Names, labels and the image. */}}

{{- define "tailrace.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{/* At most 52 characters: a StatefulSet's name, with a hash behind it, becomes a label of its pods. */}}
{{- define "tailrace.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "tailrace.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "tailrace.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "tailrace.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tailrace.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tailrace.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "tailrace.selectorLabels" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels of a pod: (dict "root" $ "component" "..." "labels" dict). The chart's version is none of them: it alone is no
reason to restart a driver. */}}
{{- define "tailrace.podLabels" -}}
{{- $labels := mergeOverwrite (omit (include "tailrace.labels" .root | fromYaml) "helm.sh/chart" "app.kubernetes.io/managed-by") (dict "app.kubernetes.io/component" .component) .labels }}
{{- toYaml $labels }}
{{- end }}

{{- define "tailrace.componentSelector" -}}
{{ include "tailrace.selectorLabels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The metadata of an object: (dict "root" $ "name" "..." "component" "..." "labels" dict "annotations" dict). */}}
{{- define "tailrace.metadata" -}}
{{- $labels := mergeOverwrite (include "tailrace.labels" .root | fromYaml) (.labels | default dict) }}
{{- with .component }}
{{- $labels = mergeOverwrite $labels (dict "app.kubernetes.io/component" .) }}
{{- end }}
{{- $annotations := mergeOverwrite (deepCopy .root.Values.commonAnnotations) (.annotations | default dict) -}}
name: {{ .name }}
namespace: {{ .namespace | default .root.Release.Namespace }}
labels:
  {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "tailrace.image" -}}
{{- with .Values.image }}
{{- $name := ternary (printf "%s/%s" .registry .repository) .repository (ne .registry "") }}
{{- if .digest }}
{{- printf "%s@%s" $name .digest }}
{{- else }}
{{- printf "%s:%s" $name (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tailrace.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "tailrace.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "tailrace.pipelineConfigMap" -}}
{{- .Values.pipeline.existingConfigMap | default (printf "%s-pipeline" (include "tailrace.fullname" .)) }}
{{- end }}

{{- define "tailrace.checkpointClaim" -}}
{{- .Values.persistence.existingClaim | default (printf "%s-checkpoint" (include "tailrace.fullname" .)) }}
{{- end }}

{{- define "tailrace.sparkSecret" -}}
{{- .Values.spark.authentication.existingSecret | default (printf "%s-spark" (include "tailrace.fullname" .)) }}
{{- end }}

{{/* A value as text: Helm holds numbers as floating point, which would write a million as 1e+06. */}}
{{- define "tailrace.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}{{ else }}{{ toString . }}{{ end }}
{{- end }}
