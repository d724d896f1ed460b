import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../platform/json.ts';
import type { CallContext } from '../calls/context.ts';

/** The same call, of which whoever answers it is told another `_meta`. */
export function withMeta(context: CallContext, meta: JsonObject | undefined): CallContext {
  const { relay } = context;
  if (isDeepStrictEqual(relay.meta, meta)) return context;
  const changed: CallContext = Object.create(context, { relay: { value: { ...relay, meta } } });
  return changed;
}
