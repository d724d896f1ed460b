/** RFC 5424 severities, least severe first. */
export const LOG_SEVERITIES = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const;

export type LogSeverity = (typeof LOG_SEVERITIES)[number];

export const isLogSeverity = (value: unknown): value is LogSeverity =>
  LOG_SEVERITIES.some((severity) => severity === value);

export const isLessSevere = (level: LogSeverity, than: LogSeverity): boolean =>
  LOG_SEVERITIES.indexOf(level) < LOG_SEVERITIES.indexOf(than);
