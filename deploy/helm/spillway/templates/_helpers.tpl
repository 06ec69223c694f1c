{{- define "spillway.fullname" -}}
{{- if contains "spillway" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-spillway" (.Release.Name | trunc 31 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "spillway.selector" -}}
app.kubernetes.io/name: spillway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "spillway.labels" -}}
{{ include "spillway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "spillway.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "spillway.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "spillway.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end -}}

{{/* Settings that follow from other values; those that are given go first. */}}
{{- define "spillway.settings" -}}
{{- $url := printf "https://%s" .Values.host -}}
{{- $found := dict
  "SPILLWAY_ALLOWED_HOSTS" (printf "%s,127.0.0.1,localhost" .Values.host)
  "SPILLWAY_ORIGINS" $url
  "SPILLWAY_CONSOLE_URL" $url
  "SPILLWAY_STATE_URL" $url
-}}
{{- if .Values.consoleCa.existingSecret -}}
{{- $_ := set $found "SPILLWAY_CONSOLE_CA" "/etc/spillway/console/ca.pem" -}}
{{- end -}}
{{- if .Values.logs.existingClaim -}}
{{- $_ := set $found "SPILLWAY_LOGS_URL" "logs+file:///var/lib/spillway-logs" -}}
{{- end -}}
{{- if not .Values.agentCertificates.existingSecret -}}
{{- /* The image names files; without them every node is one that was enrolled. */ -}}
{{- range $name := list "SPILLWAY_AGENT_CA" "SPILLWAY_AGENT_CERTIFICATE" "SPILLWAY_AGENT_KEY" -}}
{{- $_ := set $found $name "" -}}
{{- end -}}
{{- end -}}
{{- toYaml (mergeOverwrite $found .Values.settings) -}}
{{- end -}}

{{- define "spillway.environment" -}}
envFrom:
  - secretRef: {name: {{ .Values.existingSecret }}}
env:
{{- range $name, $value := fromYaml (include "spillway.settings" .) }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}

{{- define "spillway.podSettings" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "spillway.containerSettings" -}}
image: {{ include "spillway.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "spillway.volumeMounts" -}}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: run, mountPath: /run/spillway}
  - {name: state, mountPath: /var/lib/spillway}
{{- if .Values.logs.existingClaim }}
  - {name: logs, mountPath: /var/lib/spillway-logs}
{{- end }}
{{- if .Values.consoleCa.existingSecret }}
  - {name: console-ca, mountPath: /etc/spillway/console, readOnly: true}
{{- end }}
{{- if .Values.agentCertificates.existingSecret }}
  - {name: agent-certificates, mountPath: /etc/spillway/pki, readOnly: true}
{{- end }}
{{- end -}}

{{- define "spillway.volumes" -}}
volumes:
  - {name: tmp, emptyDir: {}}
  - {name: run, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
  - {name: state, emptyDir: {}}
{{- with .Values.logs.existingClaim }}
  - {name: logs, persistentVolumeClaim: {claimName: {{ . }}}}
{{- end }}
{{- with .Values.consoleCa.existingSecret }}
  - name: console-ca
    secret:
      secretName: {{ . }}
      items: [{key: {{ $.Values.consoleCa.key | quote }}, path: ca.pem}]
{{- end }}
{{- with .Values.agentCertificates.existingSecret }}
  - {name: agent-certificates, secret: {secretName: {{ . }}, defaultMode: 0440}}
{{- end }}
{{- end -}}

{{/* Pods of one kind on several machines, where that is possible. */}}
{{- define "spillway.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "spillway.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end -}}
