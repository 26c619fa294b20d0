{{/* What driver and executors find on their file systems. */}}

{{/* Sources of the folder of settings that are files: each is named like the variable in whose place it stands. */}}
{{- define "tailrace.secretFiles" -}}
{{- with .Values.existingSecret }}
- secret:
    name: {{ . }}
{{- end }}
{{- with .Values.kafka.sasl }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret }}
    items:
      - key: {{ .passwordKey }}
        path: TAILRACE_KAFKA__SASL__PASSWORD
      {{- with .usernameKey }}
      - key: {{ . }}
        path: TAILRACE_KAFKA__SASL__USERNAME
      {{- end }}
{{- end }}
{{- end }}
{{- with .Values.kafka.tls.client }}
{{- if .passwordKey }}
- secret:
    name: {{ .existingSecret }}
    items:
      - key: {{ .passwordKey }}
        path: TAILRACE_KAFKA__TLS__KEY_PASSWORD
{{- end }}
{{- end }}
{{- end }}

{{/* Sources of the folder of Kafka's certificates. Executors need the authorities only: the driver reads the client's
certificate and hands it to the tasks that write. */}}
{{- define "tailrace.kafkaAuthorities" -}}
{{- with .Values.kafka.tls.ca }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret }}
    items:
      - key: {{ .key }}
        path: ca.crt
{{- end }}
{{- end }}
{{- end }}

{{- define "tailrace.kafkaClient" -}}
{{- with .Values.kafka.tls.client }}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret }}
    items:
      - key: {{ .certificateKey }}
        path: client.crt
      - key: {{ .privateKeyKey }}
        path: client.key
{{- end }}
{{- end }}
{{- end }}

{{- define "tailrace.scratch" -}}
{{- if .Values.scratch.volume }}
{{- toYaml .Values.scratch.volume }}
{{- else if .Values.scratch.sizeLimit }}
{{- toYaml (dict "emptyDir" (dict "sizeLimit" .Values.scratch.sizeLimit)) }}
{{- else }}
{{- "emptyDir: {}" }}
{{- end }}
{{- end }}

{{/* Volumes that driver and executors have alike: (dict "root" $ "certificates" "sources, as text"). */}}
{{- define "tailrace.sharedVolumes" -}}
{{- $values := .root.Values }}
{{- if not $values.checkpoint.url }}
- name: checkpoint
  {{- if $values.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ include "tailrace.checkpointClaim" .root }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
{{- with trim .certificates }}
- name: kafka
  projected:
    defaultMode: 0440
    sources:
      {{- . | nindent 6 }}
{{- end }}
{{- if eq $values.mode "kubernetes" }}
- name: spark
  secret:
    secretName: {{ include "tailrace.sparkSecret" .root }}
    defaultMode: 0440
    items:
      - key: {{ $values.spark.authentication.key }}
        path: secret
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tailrace.sharedMounts" -}}
{{- $values := .root.Values }}
{{- if not $values.checkpoint.url }}
- name: checkpoint
  mountPath: /var/lib/tailrace/checkpoint
{{- end }}
{{- if trim .certificates }}
- name: kafka
  mountPath: /etc/tailrace/kafka
  readOnly: true
{{- end }}
{{- if eq $values.mode "kubernetes" }}
- name: spark
  mountPath: /etc/tailrace/spark
  readOnly: true
{{- end }}
{{- with $values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tailrace.driverVolumes" -}}
{{- $certificates := print (include "tailrace.kafkaAuthorities" .) (include "tailrace.kafkaClient" .) }}
- name: scratch
  {{- include "tailrace.scratch" . | nindent 2 }}
- name: pipeline
  configMap:
    name: {{ include "tailrace.pipelineConfigMap" . }}
    items:
      - key: {{ .Values.pipeline.key }}
        path: {{ .Values.pipeline.key }}
{{- with include "tailrace.secretFiles" . | trim }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- . | nindent 6 }}
{{- end }}
{{- if eq .Values.mode "kubernetes" }}
- name: executor
  configMap:
    name: {{ include "tailrace.fullname" . }}-executor
{{- end }}
{{- with include "tailrace.sharedVolumes" (dict "root" . "certificates" $certificates) | trim }}
{{ . }}
{{- end }}
{{- end }}

{{- define "tailrace.driverMounts" -}}
{{- $certificates := print (include "tailrace.kafkaAuthorities" .) (include "tailrace.kafkaClient" .) }}
- name: scratch
  mountPath: /tmp
- name: pipeline
  mountPath: /etc/tailrace/pipeline
  readOnly: true
{{- if include "tailrace.secretFiles" . }}
- name: secrets
  mountPath: /etc/tailrace/secrets
  readOnly: true
{{- end }}
{{- if eq .Values.mode "kubernetes" }}
- name: executor
  mountPath: /etc/tailrace/executor
  readOnly: true
{{- end }}
{{- with include "tailrace.sharedMounts" (dict "root" . "certificates" $certificates) | trim }}
{{ . }}
{{- end }}
{{- end }}
