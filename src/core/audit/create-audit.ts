// §21.1: one line of JSON for each event, written before what it tells of is answered.
import type { Clock } from '../clock.ts';
import { fail } from '../errors/gateway-error.ts';
import { escapeUnprintable, type Log } from '../log.ts';
import { createWarnThrottle } from '../log-throttle.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { stripUri } from '../strip-uri.ts';
import type { Audit, AuditedAction, AuditedEnd, WorkEnd } from './audit.ts';
import { judgeWork } from './judge-work.ts';
import type { LineSink } from './line-sink.ts';

export interface AuditDeps {
  readonly sink: LineSink;
  /** `AUDIT_REQUIRED`. */
  readonly isRequired: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'recordAuditLine'>;
}

export function createAudit({ sink, isRequired, clock, log, metrics }: AuditDeps): Audit {
  /** Lines that were lost since the last that could be written. */
  let lost = 0;
  const sayLost = createWarnThrottle(clock, (cause: unknown) =>
    log.error(
      isRequired
        ? 'The audit log cannot be written. Calls are refused until it can (AUDIT_REQUIRED=true). Make room, or check AUDIT_LOG.'
        : 'The audit log cannot be written, and lines are lost. Make room, or check AUDIT_LOG.',
      { cause },
    ),
  );

  function tryWrite(action: AuditedAction, end: AuditedEnd, seconds: number | undefined): boolean {
    try {
      sink.write(renderLine(clock.now(), action, end, seconds));
    } catch (cause) {
      lost += 1;
      metrics.recordAuditLine(action.event, 'error');
      sayLost(cause);
      return false;
    }
    if (lost > 0) log.warn('The audit log can be written again.', { lostLines: lost });
    lost = 0;
    metrics.recordAuditLine(action.event, 'success');
    return true;
  }

  /** Apart from the work, so that nothing of it is kept while it runs. */
  function writeEnd<Result>(
    action: AuditedAction,
    startedAt: number,
    working: Promise<Result>,
    judge: (end: WorkEnd<Result>) => AuditedEnd,
  ): Promise<Result> {
    const write = (end: WorkEnd<Result>) =>
      tryWrite(action, judge(end), (clock.monotonic() - startedAt) / 1000);
    return working.then(
      (result) => {
        write({ result });
        return result;
      },
      (thrown: unknown) => {
        write({ thrown });
        throw thrown;
      },
    );
  }

  return {
    write: tryWrite,
    async run(action, work, judge = judgeWork) {
      const startedAt = clock.monotonic();
      if (isRequired && !tryWrite(action, { outcome: 'started' }, undefined)) {
        fail('audit_unavailable', { headers: { 'Retry-After': '5' } });
      }
      return writeEnd(action, startedAt, work(), judge);
    },
    close: sink.close,
  };
}

/** Of each text, in characters: a whole line stays within what a pipe takes in one piece. */
const MAX_TEXT = 255;

/** JSON leaves out what is undefined. */
function renderLine(
  now: number,
  action: AuditedAction,
  end: AuditedEnd,
  seconds: number | undefined,
): string {
  const line = {
    time: new Date(now).toISOString(),
    event: action.event,
    outcome: end.outcome,
    reason: end.reason,
    user: cut(end.user ?? action.user),
    client: cut(end.client ?? action.client),
    ip: action.ip,
    server: end.server ?? action.server,
    tool: cut(action.tool),
    prompt: cut(action.prompt),
    resource: cut(action.resource && stripUri(action.resource)),
    action: action.action,
    target: cut(action.target),
    duration: seconds === undefined ? undefined : Math.round(seconds * 1e6) / 1000,
    trace: action.trace,
  };
  return `${escapeUnprintable(JSON.stringify(line))}\n`;
}

const cut = (text: string | undefined): string | undefined =>
  text !== undefined && text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
