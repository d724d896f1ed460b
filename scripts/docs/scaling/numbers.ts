// Numbers as docs/scaling.md shows them. Two digits: more would promise what another machine does not keep.

export const show = (value: number): string =>
  value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(2)));

export const showPercent = (share: number): string => `${Math.round(share * 100)} %`;

export const showCount = (count: number): string =>
  Number(count.toPrecision(2)).toLocaleString('en-US');
