// §21.2: requests to the provider as spans, by OpenTelemetry's conventions for HTTP. The provider is told of no trace.
import { getErrorCode } from '../../platform/error-code.ts';
import type { Fetch } from '../../platform/fetch-with-limits.ts';
import type { Tracing } from './tracing.ts';

export const traceFetch = (fetch: Fetch, tracing: Tracing): Fetch =>
  async function tracedFetch(url, init) {
    const { protocol, hostname, port, origin, pathname } = new URL(url);
    const method = init.method ?? 'GET';
    const span = tracing.startChild({
      name: method,
      kind: 'client',
      attributes: {
        'http.request.method': method,
        'server.address': hostname,
        'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
        // Without the query, where secrets may stand.
        'url.full': `${origin}${pathname}`,
      },
    });
    if (span === undefined) return fetch(url, init);
    try {
      const response = await fetch(url, init);
      span.setAttributes({ 'http.response.status_code': response.status });
      if (response.status >= 400) span.fail(String(response.status));
      return response;
    } catch (error) {
      span.fail(getErrorCode(error) ?? (error instanceof Error ? error.name : '_OTHER'));
      throw error;
    } finally {
      span.end();
    }
  };
