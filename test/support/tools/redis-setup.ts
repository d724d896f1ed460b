import { ensureCommand } from './debian.ts';

/** Once before the tests of a project: what they need beside node_modules. */
export function setup(): void {
  ensureCommand('redis-server', 'redis-server');
}
