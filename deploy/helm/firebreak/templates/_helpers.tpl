{{/* The name of everything: release and chart, or what fullnameOverride says. */}}
{{- define "firebreak.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the chart's objects are found by; a part's own are these and its component. */}}
{{- define "firebreak.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "firebreak.labels" -}}
{{ include "firebreak.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "firebreak.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "firebreak.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "firebreak.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{- define "firebreak.hubScheme" -}}
{{- if .Values.hub.tls.secretName -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{/* True where hubs share a Redis. */}}
{{- define "firebreak.hasStore" -}}
{{- if or .Values.hub.store.url .Values.hub.store.secretName -}}yes{{- end -}}
{{- end -}}

{{/* Names under which the hub is reached: its service's, short and long, the Ingress', and those of allowedHosts. */}}
{{- define "firebreak.allowedHosts" -}}
{{- $service := printf "%s-hub" (include "firebreak.fullname" .) -}}
{{- $names := list $service (printf "%s.%s" $service .Release.Namespace) -}}
{{- $names = append $names (printf "%s.%s.svc" $service .Release.Namespace) -}}
{{- $names = append $names (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) -}}
{{- if .Values.ingress.enabled -}}{{- $names = append $names .Values.ingress.host -}}{{- end -}}
{{- concat $names .Values.hub.allowedHosts | join "," -}}
{{- end -}}

{{/* OpenTelemetry's variables, for hub and proxy alike. */}}
{{- define "firebreak.otlpEnv" -}}
{{- if .Values.otlp.endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .Values.otlp.endpoint | quote }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name={{ .Release.Namespace }},k8s.pod.name=$(POD_NAME)
- name: OTEL_METRIC_EXPORT_INTERVAL
  value: {{ .Values.otlp.intervalMs | int | quote }}
{{- if .Values.otlp.headers.secretName }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ .Values.otlp.headers.secretName }}
      key: {{ .Values.otlp.headers.key }}
{{- end }}
{{- end }}
{{- end -}}
