// A connection to the primary that the sentinels name. When they name another one it moves there, even
// from a server that still answers: cut off from the others, it would take writes that are lost later.
import { Redis } from 'ioredis';
import { formatAddress, type SentinelUrl } from '../../config/sentinel-url.ts';
import {
  type ConnectOptions,
  endInOtherDatabase,
  type RedisConnection,
  SERVER_OPTIONS,
} from './connection.ts';
import { askSentinels, type PrimaryAddress } from './sentinels.ts';
import { endWhenSilent } from './silence.ts';

/** How long a server that is left, and may be frozen, has to close its end. */
const DISCONNECT_MS = 100;

export function connectPrimary(
  url: SentinelUrl,
  { backoff, clock, log }: ConnectOptions,
): RedisConnection {
  const client = new Redis({
    ...SERVER_OPTIONS,
    lazyConnect: true,
    // ioredis would try the same server again.
    retryStrategy: () => null,
    disconnectTimeout: DISCONNECT_MS,
    db: url.db,
    ...(url.username !== undefined && { username: url.username }),
    ...(url.password !== undefined && { password: url.password }),
    ...(url.isTls && { tls: {} }),
  });
  endWhenSilent(client);
  endInOtherDatabase(client);
  let primary: PrimaryAddress | undefined;
  let attempts = 0;
  let isClosed = false;
  let areSentinelsSilent = false;
  let cancelRetry = () => {};

  client.on('ready', () => {
    attempts = 0;
  });
  client.on('end', () => {
    if (isClosed) return;
    attempts += 1;
    cancelRetry = clock.after(isAtPrimary() ? backoff(attempts) : 0, connect);
  });

  const stopAsking = askSentinels(url, {
    clock,
    onPrimary(named) {
      if (areSentinelsSilent) log.info('The sentinels of Redis answer again.');
      areSentinelsSilent = false;
      const isKnown = named.host === primary?.host && named.port === primary.port;
      if (isKnown) return;
      if (primary !== undefined)
        log.info('Redis has another primary.', { primary: formatAddress(named) });
      primary = named;
      if (isUnconnected()) connect();
      else client.disconnect(true);
    },
    onUnknown(cause) {
      if (primary === undefined) {
        // As ioredis tells of an attempt to connect that failed.
        client.emit('error', cause);
        client.emit('close');
      } else if (!areSentinelsSilent) {
        areSentinelsSilent = true;
        log.warn(
          'No sentinel of Redis answers: if the primary fails, the new one cannot be found. Check that the sentinels run and that REDIS_URL is right.',
          { cause },
        );
      }
    },
  });

  const isUnconnected = () => client.status === 'wait' || client.status === 'end';

  const isAtPrimary = () =>
    client.options.host === primary?.host && client.options.port === primary?.port;

  function connect(): void {
    cancelRetry();
    if (isClosed || primary === undefined || !isUnconnected()) return;
    client.options.host = primary.host;
    client.options.port = primary.port;
    client.connect().catch(() => {});
  }

  return {
    client,
    isCluster: false,
    reconnect: connect,
    close() {
      isClosed = true;
      cancelRetry();
      stopAsking();
      client.disconnect();
    },
  };
}
