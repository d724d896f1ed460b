import { loadConfig } from '../core/config/load.ts';
import { serve } from './serve.ts';

/** `postern start`: the service, configured by environment variables. */
export const start = (): Promise<void> => serve(loadConfig(process.env));
