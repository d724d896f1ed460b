{{- define "postern.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "postern.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "postern.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "postern.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "postern.selectorLabels" -}}
app.kubernetes.io/name: {{ include "postern.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "postern.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "postern.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "postern.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "postern.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* What cannot work is refused here, with what to do. */}}
{{- define "postern.check" -}}
{{- $_ := required "baseUrl is missing: the public address, for example https://mcp.example.com" .Values.baseUrl }}
{{- $secrets := list "OAUTH_CLIENT_SECRET" "OAUTH_STATE_SECRET" "DCR_ACCESS_TOKEN" "OTEL_EXPORTER_OTLP_HEADERS" }}
{{- $addresses := list "REDIS_URL" "HTTP_PROXY" "HTTPS_PROXY" }}
{{- range $name := $secrets }}
{{- if hasKey $.Values.settings $name }}
{{- fail (printf "settings.%s is a secret: put it into a Secret, and name that in existingSecret" $name) }}
{{- end }}
{{- end }}
{{- range $name := $addresses }}
{{- if contains "@" (toString (get $.Values.settings $name)) }}
{{- fail (printf "settings.%s has a password: put it into a Secret, and name that in existingSecret" $name) }}
{{- end }}
{{- end }}
{{- range $one := .Values.env }}
{{- if and (get $one "value") (or (has $one.name $secrets) (and (has $one.name $addresses) (contains "@" (toString $one.value)))) }}
{{- fail (printf "env has the value of %s, which is a secret: put it into a Secret, and name that in existingSecret or in valueFrom" $one.name) }}
{{- end }}
{{- end }}
{{- if hasKey .Values.settings "BASE_URL" }}
{{- fail "settings.BASE_URL: set baseUrl instead" }}
{{- end }}
{{- if hasKey .Values.settings "SHUTDOWN_DELAY_MS" }}
{{- fail "settings.SHUTDOWN_DELAY_MS: set shutdownDelaySeconds instead" }}
{{- end }}
{{- if hasKey .Values.settings "METRICS_ENABLED" }}
{{- fail "settings.METRICS_ENABLED: set metrics.enabled instead" }}
{{- end }}
{{- if hasKey .Values.settings "METRICS_PORT" }}
{{- fail "settings.METRICS_PORT: remove it; ingress and httpRoute keep /metrics from the outside" }}
{{- end }}
{{- if hasKey .Values.settings "RUN_PROGRAMS_AS" }}
{{- fail "settings.RUN_PROGRAMS_AS: set runProgramsAs instead" }}
{{- end }}
{{- if include "postern.switchesUser" . }}
{{- $user := .Values.podSecurityContext }}
{{- if not (and $user.runAsUser $user.runAsGroup $user.fsGroup) }}
{{- fail "runProgramsAs needs runAsUser, runAsGroup and fsGroup in podSecurityContext: set runProgramsAs to '' where the platform chooses them (OpenShift); programs then run as the gateway's own user" }}
{{- end }}
{{- $program := splitList ":" .Values.runProgramsAs }}
{{- if or (eq (first $program) (toString (int64 $user.runAsUser))) (has (last $program) (list (toString (int64 $user.runAsGroup)) (toString (int64 $user.fsGroup)))) }}
{{- fail "runProgramsAs is the user or a group of the gateway in podSecurityContext: give programs another one" }}
{{- end }}
{{- end }}
{{- $limits := default dict .Values.resources.limits }}
{{- if and (eq (toString (get .Values.settings "WORKERS")) "auto") (not (hasKey $limits "cpu")) }}
{{- fail "settings.WORKERS=auto starts a process for each CPU of the node: set resources.limits.cpu, or WORKERS to a number" }}
{{- end }}
{{- if and (or .Values.ingress.enabled .Values.httpRoute.enabled) (trimSuffix "/" (urlParse .Values.baseUrl).path) }}
{{- fail "baseUrl has a path, and ingress and httpRoute take the whole of a host: give Postern a host of its own, or switch them off and route yourself (docs/operations/network.md)" }}
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
{{- fail "httpRoute.parentRefs is missing: the Gateway that the route belongs to, for example [{name: public, namespace: gateways}]" }}
{{- end }}
{{- $requests := default dict .Values.resources.requests }}
{{- if and .Values.autoscaling.enabled (not (hasKey $requests "cpu")) }}
{{- fail "autoscaling.enabled needs resources.requests.cpu, of which targetCPUUtilizationPercentage is a share" }}
{{- end }}
{{- $several := or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) }}
{{- if and $several .Values.persistence.enabled }}
{{- fail "persistence is for one gateway: set replicaCount to 1 and autoscaling.enabled to false, or use Redis and set persistence.enabled to false" }}
{{- end }}
{{- if and $several (not (hasKey .Values.settings "REDIS_URL")) (not .Values.existingSecret) (not (include "postern.hasRedisInEnv" .)) }}
{{- fail "several gateways need Redis: set settings.REDIS_URL, put REDIS_URL into the Secret that existingSecret names, or set replicaCount to 1" }}
{{- end }}
{{- end }}

{{/* Whether REDIS_URL is among the variables of env. */}}
{{- define "postern.hasRedisInEnv" -}}
{{- range .Values.env }}{{ if eq .name "REDIS_URL" }}yes{{ end }}{{ end }}
{{- end }}

{{/* Whether a server behind the gateway is a program. */}}
{{- define "postern.hasPrograms" -}}
{{- range $servers := list .Values.config.mcpServers .Values.config.servers }}{{ range $name, $server := default dict $servers }}{{ if hasKey $server "command" }}yes{{ end }}{{ end }}{{ end }}
{{- end }}

{{/* Whether programs run as another user than the gateway. */}}
{{- define "postern.switchesUser" -}}
{{- if and (include "postern.hasPrograms" .) .Values.runProgramsAs }}yes{{ end }}
{{- end }}

{{- define "postern.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}
