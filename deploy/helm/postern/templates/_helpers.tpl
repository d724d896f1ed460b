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
{{- range $name := list "OAUTH_CLIENT_SECRET" "OAUTH_STATE_SECRET" "DCR_ACCESS_TOKEN" }}
{{- if hasKey $.Values.settings $name }}
{{- fail (printf "settings.%s is a secret: put it into a Secret, and name that in existingSecret" $name) }}
{{- end }}
{{- end }}
{{- if hasKey .Values.settings "BASE_URL" }}
{{- fail "settings.BASE_URL: set baseUrl instead" }}
{{- end }}
{{- $several := or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) }}
{{- if and $several .Values.persistence.enabled }}
{{- fail "persistence is for one gateway: set replicaCount to 1 and autoscaling.enabled to false, or use Redis and set persistence.enabled to false" }}
{{- end }}
{{- if and $several (not (hasKey .Values.settings "REDIS_URL")) (not .Values.existingSecret) }}
{{- fail "several gateways need Redis: set settings.REDIS_URL, put REDIS_URL into the Secret that existingSecret names, or set replicaCount to 1" }}
{{- end }}
{{- end }}
