{{/*
Renders that cannot work fail here, all reasons at once, each a sentence that begins with the value and says what to set.
*/}}

{{/* Settings that the chart makes from its values, and from which. */}}
{{- define "tailrace.ownSettings" -}}
TAILRACE_CHECKPOINT: checkpoint.url or persistence
TAILRACE_HTTP__PORT: service.targetPort
TAILRACE_KAFKA__BOOTSTRAP_SERVERS: kafka.bootstrapServers
TAILRACE_KAFKA__SASL__MECHANISM: kafka.sasl.mechanism
TAILRACE_KAFKA__SASL__PASSWORD: kafka.sasl.existingSecret
TAILRACE_KAFKA__SASL__SCOPE: kafka.sasl.scope
TAILRACE_KAFKA__SASL__TOKEN_URL: kafka.sasl.tokenUrl
TAILRACE_KAFKA__SASL__USERNAME: kafka.sasl.username
TAILRACE_KAFKA__TLS__CA_FILE: kafka.tls.ca.existingSecret
TAILRACE_KAFKA__TLS__CERTIFICATE_FILE: kafka.tls.client.existingSecret
TAILRACE_KAFKA__TLS__ENABLED: kafka.tls.enabled
TAILRACE_KAFKA__TLS__KEY_FILE: kafka.tls.client.existingSecret
TAILRACE_KAFKA__TLS__KEY_PASSWORD: kafka.tls.client.passwordKey
TAILRACE_KAFKA__TLS__VERIFY_HOSTNAME: kafka.tls.verifyHostname
TAILRACE_RETRY__GRACE: terminationGracePeriodSeconds
TAILRACE_SCRATCH: scratch
TAILRACE_SECRETS_DIR: existingSecret
TAILRACE_SPARK__CONF: spark.conf
TAILRACE_SPARK__DRIVER_MEMORY: spark.driver.memory
TAILRACE_SPARK__EXECUTOR__CORES: spark.executor.cores
TAILRACE_SPARK__EXECUTOR__INSTANCES: spark.executor.instances
TAILRACE_SPARK__EXECUTOR__MEMORY: spark.executor.memory
TAILRACE_SPARK__EXECUTOR__MEMORY_OVERHEAD: spark.executor.memoryOverhead
TAILRACE_SPARK__KUBERNETES__DRIVER_ADDRESS: mode
TAILRACE_SPARK__KUBERNETES__DRIVER_POD: mode
TAILRACE_SPARK__KUBERNETES__IMAGE: image
TAILRACE_SPARK__KUBERNETES__IMAGE_PULL_POLICY: image.pullPolicy
TAILRACE_SPARK__KUBERNETES__NAMESPACE: mode
TAILRACE_SPARK__KUBERNETES__POD_TEMPLATE: spark.executor
TAILRACE_SPARK__KUBERNETES__SERVICE_ACCOUNT: serviceAccount.name
TAILRACE_SPARK__MASTER: mode, spark.driver.cores or spark.apiServer
TAILRACE_SPARK__PARTITIONS: spark.partitions
TAILRACE_SPARK__SECRET_FILE: spark.authentication.existingSecret
{{- end }}

{{/* Not empty where a value of this name would be a secret in the open: (dict "name" "..." "value" ...). `$(NAME)` is none:
Kubernetes puts a variable of the container there, which may come from a Secret. */}}
{{- define "tailrace.secretInTheOpen" -}}
{{- /* The same words as in service/observability/redaction.py. */}}
{{- $secret := "secret|passw|pwd|passphrase|token|credential|jaas|private|user[._-]?info|(?:access|account|api|encryption|shared|storage|sas|keystore|master|signing|client)[._-]?key" }}
{{- $harmless := "token[a-z._-]*(?:url|uri|mechanism|validity|lifetime)|secret[._-]?(?:file|bit[._-]?length|key[._-]?ref.*)|passw[a-z]*[._-]?file|credentials?[._-](?:provider|source)|kubernetes\\.(?:driver|executor)\\.secrets\\..*" }}
{{- $name := regexReplaceAll (printf "(?i)%s" $harmless) .name "" }}
{{- if and (regexMatch (printf "(?i)%s" $secret) $name) (not (regexMatch "^\\$\\([A-Za-z_][A-Za-z0-9_.-]*\\)$" (toString .value))) }}
{{- print "yes" }}
{{- end }}
{{- end }}

{{/* The mebibytes of a quantity (4Gi, 500M) or of memory as Java reads it (1g). */}}
{{- define "tailrace.mebibytes" -}}
{{- $number := regexFind "^[0-9.]+" . | float64 }}
{{- $unit := regexFind "[A-Za-z]+$" . }}
{{- $bytes := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "m" 1048576 "g" 1073741824 }}
{{- divf (mulf $number (get $bytes $unit | default 1)) 1048576 | int64 }}
{{- end }}

{{- define "tailrace.check" -}}
{{- $wrong := concat (include "tailrace.checkWorkload" . | fromYamlArray) (include "tailrace.checkPipeline" . | fromYamlArray) (include "tailrace.checkKafka" . | fromYamlArray) (include "tailrace.checkWatching" . | fromYamlArray) }}
{{- if $wrong }}
{{- printf "\n- %s\n" (join "\n- " $wrong) | fail }}
{{- end }}
{{- end }}

{{- define "tailrace.checkWorkload" -}}
{{- $values := .Values }}
{{- $modes := $values.persistence.accessModes }}
{{- if hasKey $values "replicaCount" }}
- "replicaCount: a pipeline has one driver, two on one checkpoint would spoil it; leave it out, and scale by spark.executor.instances (mode: kubernetes) or spark.driver.cores (mode: local)"
{{- end }}
{{- with $values.checkpoint.url }}
{{- if hasPrefix "s3://" . }}
- {{ printf "checkpoint.url: Spark reaches S3 as s3a; set it to %s" (replace "s3://" "s3a://" .) | toJson }}
{{- else if hasPrefix "file:" . }}
- "checkpoint.url: a file of the pod dies with it; leave it empty and set persistence, or name an object store"
{{- else if not (regexMatch "^[a-z][a-z0-9]+://[^/]+" .) }}
- {{ printf "checkpoint.url: %q is no URL of an object store such as s3a://bucket/folder; for a folder on a volume leave it empty and set persistence" . | toJson }}
{{- end }}
{{- end }}
{{- if and (not $values.checkpoint.url) (eq $values.mode "kubernetes") }}
{{- if not $values.persistence.enabled }}
- "persistence.enabled: with mode kubernetes driver and executors share the checkpoint; set it to true with persistence.accessModes [ReadWriteMany], or set checkpoint.url to an object store"
{{- else if $values.persistence.existingClaim }}
{{- $claim := lookup "v1" "PersistentVolumeClaim" .Release.Namespace $values.persistence.existingClaim }}
{{- if and $claim (not (has "ReadWriteMany" $claim.spec.accessModes)) }}
- {{ printf "persistence.existingClaim: with mode kubernetes executors write to the checkpoint too, and the claim %s is %s; name one that is ReadWriteMany, or set checkpoint.url to an object store" $values.persistence.existingClaim (join ", " $claim.spec.accessModes) | toJson }}
{{- end }}
{{- else if not (has "ReadWriteMany" $modes) }}
- {{ printf "persistence.accessModes: with mode kubernetes executors write to the checkpoint too, which %s does not allow; set it to [ReadWriteMany], or set checkpoint.url to an object store" (join ", " $modes) | toJson }}
{{- end }}
{{- end }}
{{- if and (eq $values.mode "kubernetes") (not $values.serviceAccount.create) (not $values.serviceAccount.name) }}
- "serviceAccount.name: the driver needs an account with the right to make pods; name the one that exists, or set serviceAccount.create to true"
{{- end }}
{{- with ($values.resources.limits).memory }}
{{- $limit := include "tailrace.mebibytes" (toString .) | int }}
{{- $heap := include "tailrace.mebibytes" $values.spark.driver.memory | int }}
{{- if le $limit $heap }}
- {{ printf "resources.limits.memory: %s leaves nothing beside the JVM's heap of %s, where Python and DuckDB live; set it to %dMi or more, or lower spark.driver.memory" (toString .) $values.spark.driver.memory (mul 2 $heap) | toJson }}
{{- end }}
{{- end }}
{{- $taken := include "tailrace.ownSettings" . | fromYaml }}
{{- range $name, $_ := $values.config }}
{{- if hasKey $taken (upper $name) }}
- {{ printf "config.%s: the chart makes it from another value; set %s" $name (get $taken (upper $name)) | toJson }}
{{- end }}
{{- end }}
{{- range $name, $value := $values.spark.conf }}
{{- if include "tailrace.secretInTheOpen" (dict "name" $name "value" $value) }}
- {{ printf "spark.conf: everybody who may look at the pod would read the secret %s; leave the keys of an object store out and name their Secret in checkpoint.existingSecret, for others name one in extraEnvFrom and write $(NAME), a key of it, as the value" $name | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tailrace.checkPipeline" -}}
{{- with .Values.pipeline }}
{{- if and .sql .existingConfigMap }}
- "pipeline: sql and existingConfigMap are both set, and one pipeline runs; leave one of them empty"
{{- else if not (or (trim .sql) .existingConfigMap) }}
- "pipeline: there is nothing to run; set pipeline.sql (--set-file pipeline.sql=pipeline.sql) or pipeline.existingConfigMap"
{{- end }}
{{- range $name, $value := .variables }}
{{- if include "tailrace.secretInTheOpen" (dict "name" $name "value" $value) }}
- {{ printf "pipeline.variables: everybody who may look at the pod would read the secret %s; leave it out, and take it from a Secret by extraEnv" $name | toJson }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tailrace.checkKafka" -}}
{{- with .Values.kafka.sasl }}
{{- if .mechanism }}
{{- if not .existingSecret }}
- {{ printf "kafka.sasl.existingSecret: %s needs a password; name the Secret that holds it, and kafka.sasl.passwordKey if its key is not %q" .mechanism .passwordKey | toJson }}
{{- end }}
{{- if not (or .username .usernameKey) }}
- {{ printf "kafka.sasl.username: %s needs a user; set it, or kafka.sasl.usernameKey if the Secret holds the name" .mechanism | toJson }}
{{- end }}
{{- if and .username .usernameKey }}
- "kafka.sasl: username and usernameKey are both set; leave one of them empty"
{{- end }}
{{- if and (eq .mechanism "OAUTHBEARER") (not .tokenUrl) }}
- "kafka.sasl.tokenUrl: OAUTHBEARER asks somebody for its tokens; set the URL where they are given out"
{{- end }}
{{- if and (ne .mechanism "OAUTHBEARER") (or .tokenUrl .scope) }}
- {{ printf "kafka.sasl: tokenUrl and scope mean nothing to %s; leave them empty, or set kafka.sasl.mechanism to OAUTHBEARER" .mechanism | toJson }}
{{- end }}
{{- else if or .existingSecret .username .usernameKey .tokenUrl .scope }}
- "kafka.sasl.mechanism: there is a login but no way to use it; set PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
{{- end }}
{{- end }}
{{- with .Values.kafka.tls }}
{{- if and (not .enabled) (or .ca.existingSecret .client.existingSecret) }}
- "kafka.tls.enabled: certificates are given but TLS is not spoken; set it to true, or leave kafka.tls.ca and kafka.tls.client empty"
{{- end }}
{{- if and .client.passwordKey (not .client.existingSecret) }}
- "kafka.tls.client.existingSecret: passwordKey names a key of it; set it to the Secret that holds the client's certificate"
{{- end }}
{{- end }}
{{- end }}

{{- define "tailrace.checkWatching" -}}
{{- $values := .Values }}
{{- if and $values.serviceMonitor.enabled $values.podMonitor.enabled }}
- "podMonitor.enabled: with a ServiceMonitor beside it every metric would be read twice; enable one of them"
{{- end }}
{{- if and $values.networkPolicy.enabled $values.networkPolicy.egress.enabled (not $values.networkPolicy.egress.kafkaPorts) (not $values.kafka.bootstrapServers) }}
- "networkPolicy.egress.kafkaPorts: the brokers' ports are not known where the pipeline names the brokers; list them"
{{- end }}
{{- end }}
