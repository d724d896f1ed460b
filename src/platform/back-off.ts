/** How long to wait before what has failed is tried again. */
export interface BackOff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Milliseconds after so many failures in a row, from 1 on: twice as long after each. */
export const computePauseMs = ({ firstMs, longestMs }: BackOff, failures: number): number =>
  Math.min(longestMs, firstMs * 2 ** (failures - 1));
