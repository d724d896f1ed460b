import { closeSync, openSync } from 'node:fs';
import type { IdlePattern } from '../../../catalog/idle-patterns.ts';
import { formatProblem } from '../../../config/problem.ts';
import type { IsIdle } from '../../../control/compare-protections.ts';
import type { GatewaySetup } from '../../../gateway/configuration/gateway-file.ts';
import type { Log } from '../../../platform/log.ts';
import { describeProtection, findLosses, summarizeSetup } from './find-losses.ts';
import type { ReadSetup } from './read-setup.ts';
import { computeStamp, type StampedFile, watchFile } from './watch-file.ts';

/** What a process does with the file. */
export interface FollowActions {
  /**
   * From now on the gateway is to serve what the setup says. `changed`: the files that were changed since the last time;
   * none where somebody asked for it.
   */
  readonly load: (setup: GatewaySetup, changed: readonly string[]) => Promise<void>;
  /** Patterns that fit nothing of what servers have listed, were this the setup. */
  findIdlePatterns(setup: GatewaySetup): readonly IdlePattern[];
  /** Before the process ends because its terminal was closed. */
  readonly close: () => Promise<void>;
  readonly log: Log;
}

interface FollowOptions extends FollowActions {
  /** What is served. */
  readonly setup: GatewaySetup;
  /** The lock lies beside the file. */
  readonly watched: Readonly<Record<'file' | 'lock', StampedFile>>;
  read(): Promise<ReadSetup>;
}

export type Following = ReturnType<typeof followConfigFile>;

/** Loads the file anew when it or its lock changes, and at SIGHUP, until it is stopped. */
export function followConfigFile(options: FollowOptions) {
  const { watched, read, load, close, log } = options;
  const { path } = watched.file;
  let served = options.setup;
  let loading: Promise<boolean> | undefined;
  let isOutdated = false;
  let hasEnded = false;
  /** Since it was last loaded. */
  const changed = new Set<string>();

  /** One after the other; of changes meanwhile the last one counts. Resolves to whether that was loaded. */
  function reload(): Promise<boolean> {
    isOutdated = true;
    loading ??= loadWhileOutdated();
    return loading;
  }

  async function loadWhileOutdated(): Promise<boolean> {
    let isLoaded = false;
    while (isOutdated && !hasEnded) {
      isOutdated = false;
      isLoaded = await loadOnce().catch((cause: unknown) => {
        log.error(
          'The configuration file could not be loaded. What was served before may be incomplete: restart the gateway.',
          { path, cause },
        );
        return false;
      });
    }
    loading = undefined;
    return isLoaded;
  }

  async function loadOnce(): Promise<boolean> {
    const lockStamp = computeStamp(watched.lock.path);
    const parsed = await read();
    if (hasEnded) return false;
    if (!parsed.isWhole && !fileWatch.isSettled()) {
      log.info(
        'The configuration file is being written. It is loaded once it has stayed the same for a second.',
        { path },
      );
      return false;
    }
    if (parsed.kind === 'problems') {
      log.error(
        'The configuration file has problems, so the one that was loaded before is kept. Correct it, and it is loaded by itself.',
        { path, problems: parsed.problems.map(formatProblem) },
      );
      return false;
    }
    const losses = findLosses(describeProtection(served), parsed.setup, {
      isServedIdle: createIsIdle(served),
      isNextIdle: createIsIdle(parsed.setup),
    });
    if (losses.length > 0) {
      log.error(
        'The configuration file was not loaded, because users could do more without what it has lost. The one that was loaded before is kept until the next start, which takes the file as it is.',
        { path, lost: losses },
      );
      return false;
    }
    const files = [...changed];
    changed.clear();
    await load(parsed.setup, files);
    lockWatch.skip(lockStamp);
    served = parsed.setup;
    for (const warning of parsed.warnings) log.warn(warning);
    log.info('Loaded the configuration file anew.', { path, ...summarizeSetup(parsed.setup) });
    return true;
  }

  function createIsIdle(setup: GatewaySetup): IsIdle {
    const idle = options.findIdlePatterns(setup);
    return (subject, pattern) =>
      idle.some((one) => one.subject === subject && one.pattern === pattern);
  }

  const watch = (file: StampedFile) =>
    watchFile({
      ...file,
      onChange() {
        changed.add(file.path);
        void reload();
      },
    });
  const fileWatch = watch(watched.file);
  const lockWatch = watch(watched.lock);
  onHangUp(() => void reload(), close);
  return {
    /** The lock was written: loads both at once. False where they were not loaded, and the log says why. */
    loadLock() {
      changed.add(watched.lock.path);
      return reload();
    },
    stop() {
      hasEnded = true;
      fileWatch.stop();
      lockWatch.stop();
    },
  };
}

/**
 * From now on SIGHUP reloads. Where it came because the terminal was closed in which this process was
 * started, the process ends by it, as it would without a listener, but closes before.
 */
export function onHangUp(reload: () => void, close: () => Promise<void>): void {
  const isInTerminal = process.stdin.isTTY === true;

  function handleSignal(): void {
    if (isInTerminal && !hasTerminal()) void end();
    else reload();
  }

  async function end(): Promise<void> {
    process.off('SIGHUP', handleSignal);
    // There is nobody to tell.
    await close().catch(() => {});
    // Not by process.exit: Node.js 20 aborts there when it finds its terminal gone.
    process.kill(process.pid, 'SIGHUP');
  }

  process.on('SIGHUP', handleSignal);
}

/** Whether the process still has the terminal that controls it. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
