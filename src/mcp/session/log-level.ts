// MCP "Logging": which log messages a session's client wants.
import { isLogSeverity, type LogSeverity } from '../../protocol/log-severity.ts';

/** Until the client says more, the server decides. */
export const readLogLevel = (stored: string | undefined): LogSeverity =>
  isLogSeverity(stored) ? stored : 'info';
