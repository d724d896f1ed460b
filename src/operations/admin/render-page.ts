// §22.2: what the lists of the operators' API have in common.
import type { JsonObject } from '../../platform/json.ts';
import type { Page } from '../../store/page.ts';
import { type AdminPlace, renderCursor } from './read-page-request.ts';

export interface AdminPage<Item> extends Page<Item> {
  readonly next: AdminPlace | undefined;
}

export const renderNext = ({ next }: AdminPage<unknown>): JsonObject => ({
  nextCursor: renderCursor(next),
});

/** Of a list that is in memory, in which a place is a number. */
export const renderNextOf = (total: number, skip: number): JsonObject => ({
  nextCursor: renderCursor(skip < total ? { time: 0, skip } : undefined),
});

export const MAX_TEXT = 200;

export const readShort = (value: unknown): string | undefined =>
  typeof value === 'string' ? value.slice(0, MAX_TEXT) : undefined;

export const renderTime = (time: number): string => new Date(time).toISOString();
