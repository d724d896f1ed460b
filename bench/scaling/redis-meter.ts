// What Redis says of itself, before and after a load.
import type { Redis } from 'ioredis';

export interface RedisReading {
  readonly cpuSeconds: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** How often each command ran, by itself or in a script. */
  readonly calls: Readonly<Record<string, number>>;
}

/** Each of one request. */
export interface RedisFigures {
  readonly cpuMicroseconds: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly scripts: number;
  /** Commands inside of the scripts. */
  readonly operations: number;
}

export interface RedisMeter {
  read(): Promise<RedisReading>;
  computeUse(before: RedisReading, after: RedisReading, requests: number): RedisFigures;
}

const SCRIPT_COMMANDS = ['evalsha', 'eval'];
/** Commands of the measurement itself. */
const OWN_COMMANDS = ['info', 'config', 'client', 'hello', 'select', 'ping', 'script', 'auth'];

export const createRedisMeter = (client: Redis): RedisMeter => ({
  async read() {
    const info = await client.info('everything');
    const find = (name: string) => Number(new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]);
    const stats = [...info.matchAll(/^cmdstat_([a-z|]+):calls=(\d+)/gm)];
    return {
      cpuSeconds: find('used_cpu_user') + find('used_cpu_sys'),
      bytesIn: find('total_net_input_bytes'),
      bytesOut: find('total_net_output_bytes'),
      calls: Object.fromEntries(stats.map(([, command, calls]) => [command, Number(calls)])),
    };
  },
  computeUse(before, after, requests) {
    const countCalls = (isCounted: (command: string) => boolean) =>
      Object.entries(after.calls)
        .filter(([command]) => isCounted(command.split('|')[0] ?? ''))
        .reduce((sum, [command, calls]) => sum + calls - (before.calls[command] ?? 0), 0) /
      requests;
    const isScript = (command: string) => SCRIPT_COMMANDS.includes(command);
    return {
      cpuMicroseconds: ((after.cpuSeconds - before.cpuSeconds) / requests) * 1e6,
      bytesIn: (after.bytesIn - before.bytesIn) / requests,
      bytesOut: (after.bytesOut - before.bytesOut) / requests,
      scripts: countCalls(isScript),
      operations: countCalls((command) => !isScript(command) && !OWN_COMMANDS.includes(command)),
    };
  },
});
