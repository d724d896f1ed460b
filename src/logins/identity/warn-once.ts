// §13.2: what is the same for every user is told once.
import type { JsonObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';

export type WarnOnce = (topic: string, message: string, facts: JsonObject) => void;

export function createWarnOnce(log: Log): WarnOnce {
  const told = new Set<string>();

  return function warnOnce(topic, message, facts) {
    if (told.has(topic)) return;
    told.add(topic);
    log.warn(message, facts);
  };
}
