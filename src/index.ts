/**
 * `postern`: the gateway as a library, with a catalogue of your own. What the catalogue is made of
 * comes from `postern/define`; it is exported here as well, as it was in 0.1.
 *
 * @packageDocumentation
 */
export type { Clock } from './core/clock.ts';
export type { Config } from './core/config/config.ts';
export { ConfigError } from './core/config/config-error.ts';
export { loadConfig } from './core/config/load.ts';
export type { Log } from './core/log.ts';
export type { Store } from './core/store/store.ts';
export * from './define.ts';
export { createGateway, type Deps, type Gateway } from './gateway.ts';
