import { ensureCommand } from './debian.ts';

/** Once before all tests. */
export function setup(): void {
  ensureCommand('redis-server', 'redis-server');
}
