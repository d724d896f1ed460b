/**
 * `postern`: the gateway as a library, with your own catalogue. The functions that define its content come from `postern/define`,
 * and are also exported here.
 *
 * @packageDocumentation
 */

export type { Config } from './config/config.ts';
export { loadConfig } from './config/load.ts';
export { ConfigError } from './config/problem.ts';
export * from './define.ts';
export { createGateway, type Deps, type Gateway } from './gateway/gateway.ts';
export type { Clock } from './platform/clock.ts';
export type { Log } from './platform/log.ts';
export type { Store } from './store/store.ts';
