{{/* What the containers of the driver's pod have in common: the one that runs the pipeline, and the one before it that backfills
what is new. */}}

{{- define "tailrace.ofAnyRun" -}}
{{- $values := .Values -}}
image: {{ include "tailrace.image" . | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
# The image is read-only; what is written besides state goes where it may be lost.
workingDir: /tmp
env:
  {{- include "tailrace.env" . | trim | nindent 2 }}
  {{- with $values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with include "tailrace.envFrom" . | trim }}
envFrom:
  {{- . | nindent 2 }}
{{- end }}
{{- with $values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
# What one that gave up said last is shown by `kubectl describe pod`.
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  {{- include "tailrace.driverMounts" . | trim | nindent 2 }}
{{- end }}

{{/* The place from which what is new is backfilled; empty where a query with operators that are new is refused. */}}
{{- define "tailrace.backfillsFrom" -}}
{{- include "tailrace.text" .Values.upgrade.from }}
{{- end }}
