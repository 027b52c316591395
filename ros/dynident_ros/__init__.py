"""ROS 2 around dynident: logs recorded, excitation played, parameters and load followed.

`readings`, `limits`, `motion` and `following` are plain modules that know no ROS; the nodes
(`record_node`, `play_node`, `track_node`) connect them to topics, actions and parameters, and
`messages` says what of them is in which message.
"""
