{{/* The pod template of executors: what Spark does not put into the pods it makes itself. */}}

{{- define "tailrace.executorPod" -}}
{{- $values := .Values }}
{{- $executor := $values.spark.executor }}
{{- $volumes := dict "root" . "certificates" (include "tailrace.kafkaAuthorities" .) -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "tailrace.podLabels" (dict "root" . "component" "executor" "labels" $executor.podLabels) | nindent 4 }}
  {{- with mergeOverwrite (deepCopy $values.commonAnnotations) $executor.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  # Nothing in an executor talks to the API server.
  automountServiceAccountToken: false
  # A Service called tailrace would put variables into the environment that look like settings.
  enableServiceLinks: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $executor.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: spark-kubernetes-executor
      # Spark keeps what it is sent in the working folder, and the image is read-only.
      workingDir: /tmp
      {{- with $values.securityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with include "tailrace.envFrom" . | trim }}
      envFrom:
        {{- . | nindent 8 }}
      {{- end }}
      volumeMounts:
        # By this name Spark knows that its local folders are here, and makes no volume of its own for them.
        - name: spark-local-dir-1
          mountPath: /tmp
        {{- include "tailrace.sharedMounts" $volumes | trim | nindent 8 }}
    {{- with $executor.sidecars }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: spark-local-dir-1
      {{- include "tailrace.scratch" . | nindent 6 }}
    {{- include "tailrace.sharedVolumes" $volumes | trim | nindent 4 }}
  {{- with $executor.nodeSelector | default $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $executor.tolerations | default $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $executor.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $executor.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- include "tailrace.spread" (dict "root" $ "constraints" . "component" "executor") | nindent 4 }}
  {{- end }}
  {{- with $executor.priorityClassName | default $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $executor.extraPodSpec }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Constraints of spreading, those without a selector with that of the component's pods. */}}
{{- define "tailrace.spread" -}}
{{- $selector := dict "matchLabels" (include "tailrace.componentSelector" . | fromYaml) }}
{{- $constraints := list }}
{{- range .constraints }}
{{- $constraints = append $constraints (merge (deepCopy .) (dict "labelSelector" $selector)) }}
{{- end }}
{{- toYaml $constraints }}
{{- end }}
