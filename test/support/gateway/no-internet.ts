import type { Network } from '../../../src/platform/outbound/public-network.ts';

/** What tests have unless they bring hosts of their own: nobody else is asked or connected to. */
export const noInternet: Network = {
  resolve: (host) => Promise.reject(new Error(`queryA ENOTFOUND ${host}`)),
  dial: () => Promise.reject(new Error('connect ENETUNREACH')),
};
