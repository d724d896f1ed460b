/**
 * `postern`: the gateway as a library, with a catalogue of your own. What the catalogue is made of
 * comes from `postern/define`; it is exported here as well, as it was in 0.1.
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
