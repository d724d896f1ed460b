// How the process ends: in peace at the first signal, at once at the second, and with exit code 1 by an error.
import { constants } from 'node:os';
import { systemClock } from '../core/clock.ts';
import { getStackFacts } from '../core/errors/gateway-error.ts';
import type { Log } from '../core/log.ts';

/**
 * Ctrl+C reaches npm and the service alike, and npm hands its own on: what follows an interrupt
 * this soon (milliseconds) is its echo, no second wish.
 */
const ECHO_MS = 200;

/** SIGTERM and SIGINT close and exit 0, a second one ends at once; an error nobody caught exits 1. */
export function endWithProcess(log: Log, close: () => Promise<void>): void {
  let first: { readonly signal: string; readonly at: number } | undefined;

  function onSignal(signal: 'SIGTERM' | 'SIGINT'): void {
    const at = systemClock.monotonic();
    if (first === undefined) {
      first = { signal, at };
      log.info('Shutting down; a second signal ends at once.', { signal });
      void shutDown();
    } else if (signal !== 'SIGINT' || first.signal !== signal || at - first.at > ECHO_MS) {
      process.exit(128 + constants.signals[signal]);
    }
  }

  async function shutDown(): Promise<void> {
    try {
      await close();
      log.info('Stopped.');
      process.exit(0);
    } catch (cause) {
      log.error('The shutdown failed.', { cause });
      process.exit(1);
    }
  }

  function onCrash(cause: unknown): void {
    log.error(
      'An error that nobody caught; the process ends. The stack says where, perhaps in a tool.',
      { cause, ...getStackFacts(cause) },
    );
    process.exit(1);
  }

  /** A forgotten await in one tool must not end the service for everybody. */
  function onRejection(cause: unknown): void {
    log.error(
      'A promise was rejected and nobody waited for it. The stack says where: perhaps an await is missing in a tool.',
      { cause, ...getStackFacts(cause) },
    );
  }

  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onRejection);
}
