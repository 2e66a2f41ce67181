"""Core formula → LP-normal form.

In: `core.Query`. Out: `normal_form.NormalForm`: conditions and labels stand at single events; what
cannot go there (conditions across events) stays where it is written. `normalize` is the way in;
`rewrite` moves conditions and labels, `facts` makes facts of aggregates, `count_limits` refuses
large numbers. For conditions across events `flatten` makes roles of the events that they compare,
or `relax` leaves them out. `show` prints. Imports `core` and below.
"""
