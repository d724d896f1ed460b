import type { CommonUpstreamConfig } from './config/common-config.ts';
import type { Upstream } from './upstream.ts';

/** The same server, of which some is done in another way. */
export const wrapUpstream = <Config extends CommonUpstreamConfig>(
  upstream: Upstream<Config>,
  changed: Partial<Omit<Upstream, 'config' | 'isUp' | 'era'>>,
): Upstream<Config> => ({
  config: upstream.config,
  get isUp() {
    return upstream.isUp;
  },
  get era() {
    return upstream.era;
  },
  request: upstream.request,
  describe: upstream.describe,
  peekDescription: upstream.peekDescription,
  listen: upstream.listen,
  onStateChange: upstream.onStateChange,
  endSession: upstream.endSession,
  close: upstream.close,
  ...changed,
});
